(comment) @lead

(function_declaration name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(class_declaration name: (type_identifier) @name) @class
(export_statement declaration: (function_declaration name: (identifier) @name)) @function
(export_statement declaration: (generator_function_declaration name: (identifier) @name)) @function
(export_statement declaration: (class_declaration name: (type_identifier) @name)) @class
(export_statement "default" @name value: [(function_expression) (arrow_function)]) @function
(export_statement "default" @name value: (class)) @class

(class_body (method_definition name: (_) @name) @method)
(class_body (public_field_definition name: (_) @name value: [(arrow_function) (function_expression)]) @method)

(lexical_declaration . (variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)])) @function
(export_statement declaration: (lexical_declaration . (variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)]))) @function
(lexical_declaration . (variable_declarator name: (identifier) @name value: (class))) @class
(variable_declaration . (variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)])) @function

(abstract_class_declaration name: (type_identifier) @name) @class
(export_statement declaration: (abstract_class_declaration name: (type_identifier) @name)) @class
(interface_declaration name: (type_identifier) @name) @class
(export_statement declaration: (interface_declaration name: (type_identifier) @name)) @class
(enum_declaration name: (identifier) @name) @class
(export_statement declaration: (enum_declaration name: (identifier) @name)) @class
(type_alias_declaration name: (type_identifier) @name) @constants
(export_statement declaration: (type_alias_declaration name: (type_identifier) @name)) @constants
(internal_module name: (_) @path) @namespace
(export_statement declaration: (internal_module name: (_) @path)) @namespace
(module name: (_) @name) @namespace
(ambient_declaration (module name: (_) @name)) @namespace
(function_signature name: (identifier) @name) @function
(class_body (abstract_method_signature name: (_) @name) @method)
(class_body (method_signature name: (_) @name) @method)

; At the root:
(program (lexical_declaration . (variable_declarator name: (_) @name)) @constants)
(program (variable_declaration . (variable_declarator name: (_) @name)) @constants)
(program (export_statement declaration: (lexical_declaration . (variable_declarator name: (_) @name))) @constants)
(program (export_statement declaration: (variable_declaration . (variable_declarator name: (_) @name))) @constants)
(program [(if_statement) (try_statement) (for_statement) (for_in_statement) (while_statement) (switch_statement)] @block)
