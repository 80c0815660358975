(comment) @lead

(function_definition declarator: [
  (function_declarator declarator: (identifier) @name)
  (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))
  (pointer_declarator declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name)))
  (function_declarator declarator: (parenthesized_declarator (identifier) @name))]) @function

(struct_specifier name: (type_identifier) @name body: (_)) @class
(union_specifier name: (type_identifier) @name body: (_)) @class
(enum_specifier name: (type_identifier) @name body: (_)) @class
(declaration type: [(struct_specifier name: (_) @name body: (_)) (union_specifier name: (_) @name body: (_)) (enum_specifier name: (_) @name body: (_))]) @class
(type_definition type: [(struct_specifier body: (_)) (union_specifier body: (_)) (enum_specifier body: (_))] declarator: (type_identifier) @name) @class

(declaration declarator: [
  (identifier) @name
  (init_declarator declarator: (identifier) @name)
  (init_declarator declarator: (pointer_declarator declarator: (identifier) @name))
  (init_declarator declarator: (array_declarator declarator: (identifier) @name))
  (array_declarator declarator: (identifier) @name)
  (pointer_declarator declarator: (identifier) @name)]) @constants
(type_definition declarator: (type_identifier) @name) @constants
(preproc_def name: (identifier) @name) @constants
(preproc_function_def name: (identifier) @name) @constants

(preproc_if alternative: (_)) @block
(preproc_ifdef alternative: (_)) @block

(function_definition declarator: [
  (function_declarator declarator: [(field_identifier) (destructor_name) (operator_name)] @name)
  (pointer_declarator declarator: (function_declarator declarator: [(field_identifier) (destructor_name) (operator_name)] @name))
  (reference_declarator (function_declarator declarator: [(identifier) (field_identifier) (destructor_name) (operator_name)] @name))
  (operator_cast) @name]) @function
(function_definition declarator: [
  (function_declarator declarator: (qualified_identifier) @path)
  (pointer_declarator declarator: (function_declarator declarator: (qualified_identifier) @path))
  (reference_declarator (function_declarator declarator: (qualified_identifier) @path))]) @method
(template_declaration (function_definition declarator: (function_declarator declarator: (identifier) @name))) @function
(template_declaration (function_definition declarator: (function_declarator declarator: (qualified_identifier) @path))) @method

(class_specifier name: (type_identifier) @name body: (_)) @class
(template_declaration (class_specifier name: (type_identifier) @name body: (_))) @class
(template_declaration (struct_specifier name: (type_identifier) @name body: (_))) @class
(namespace_definition name: (_) @path) @namespace
(alias_declaration name: (type_identifier) @name) @constants
