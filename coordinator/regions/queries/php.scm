[(comment) (attribute_list)] @lead

(function_definition name: (name) @name) @function
[(class_declaration name: (name) @name)
 (interface_declaration name: (name) @name)
 (trait_declaration name: (name) @name)
 (enum_declaration name: (name) @name)] @class
(namespace_definition name: (_) @path body: (_)) @namespace
(method_declaration name: (name) @name) @method

; At the root:
(program (const_declaration (const_element . (name) @name)) @constants)
(program (expression_statement (assignment_expression left: (variable_name) @name)) @constants)
(program [(if_statement) (try_statement) (for_statement) (foreach_statement) (while_statement) (switch_statement)] @block)
