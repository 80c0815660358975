[(line_comment) (block_comment)] @lead

[(class_declaration name: (identifier) @name)
 (interface_declaration name: (identifier) @name)
 (enum_declaration name: (identifier) @name)
 (record_declaration name: (identifier) @name)
 (annotation_type_declaration name: (identifier) @name)] @class
[(method_declaration name: (identifier) @name)
 (constructor_declaration name: (identifier) @name)
 (compact_constructor_declaration name: (identifier) @name)] @function
