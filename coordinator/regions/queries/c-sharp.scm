(comment) @lead

[(class_declaration name: (identifier) @name)
 (interface_declaration name: (identifier) @name)
 (struct_declaration name: (identifier) @name)
 (record_declaration name: (identifier) @name)
 (enum_declaration name: (identifier) @name)] @class
(namespace_declaration name: (_) @path) @namespace
[(method_declaration name: (identifier) @name)
 (constructor_declaration name: (identifier) @name)
 (property_declaration name: (identifier) @name)
 (local_function_statement name: (identifier) @name)] @function
(destructor_declaration "~" @name name: (identifier) @name) @function
(operator_declaration "operator" @name operator: _ @name) @function
(delegate_declaration name: (identifier) @name) @constants
