(comment) @lead

(function_declaration name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(class_declaration name: (identifier) @name) @class
(export_statement declaration: (function_declaration name: (identifier) @name)) @function
(export_statement declaration: (generator_function_declaration name: (identifier) @name)) @function
(export_statement declaration: (class_declaration name: (identifier) @name)) @class
(export_statement "default" @name value: [(function_expression) (arrow_function)]) @function
(export_statement "default" @name value: (class)) @class

(class_body (method_definition name: (_) @name) @method)
(class_body (field_definition property: (_) @name value: [(arrow_function) (function_expression)]) @method)

(lexical_declaration . (variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)])) @function
(export_statement declaration: (lexical_declaration . (variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)]))) @function
(lexical_declaration . (variable_declarator name: (identifier) @name value: (class))) @class
(variable_declaration . (variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)])) @function

; At the root:
(program (lexical_declaration . (variable_declarator name: (_) @name)) @constants)
(program (variable_declaration . (variable_declarator name: (_) @name)) @constants)
(program (export_statement declaration: (lexical_declaration . (variable_declarator name: (_) @name))) @constants)
(program (export_statement declaration: (variable_declaration . (variable_declarator name: (_) @name))) @constants)
(program [(if_statement) (try_statement) (for_statement) (for_in_statement) (while_statement) (switch_statement)] @block)
