(comment) @lead

(function_definition name: (word) @name) @function

; At the root:
(program (variable_assignment name: (variable_name) @name) @constants)
(program (declaration_command (variable_assignment name: (variable_name) @name)) @constants)
(program [(if_statement) (case_statement) (for_statement) (c_style_for_statement) (while_statement)] @block)
