(comment) @lead

(function_definition name: (identifier) @name) @function
(class_definition name: (identifier) @name) @class
(decorated_definition definition: (function_definition name: (identifier) @name)) @function
(decorated_definition definition: (class_definition name: (identifier) @name)) @class

; At the root:
(module (expression_statement (assignment left: (identifier) @name)) @constants)
(module (expression_statement (augmented_assignment left: (identifier) @name)) @constants)
(module (expression_statement (assignment left: (pattern_list . (identifier) @name))) @constants)
(module (type_alias_statement left: (type) @name) @constants)
(module [(if_statement) (try_statement) (for_statement) (while_statement) (with_statement) (match_statement)] @block)
