(comment) @lead

(class name: (_) @path) @class
(module name: (_) @path) @class
(singleton_class "class" @name) @class
(method name: (_) @name) @function
(singleton_method object: (_) @name name: (_) @name) @function

; At the root:
(program (assignment left: [(constant) (identifier) (global_variable)] @name) @constants)
(program [(if) (unless) (case) (while) (begin)] @block)
