(comment) @lead

(function_declaration name: (identifier) @name) @function
(method_declaration
  receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @scope
    (pointer_type (type_identifier) @scope)
    (generic_type type: (type_identifier) @scope)
    (pointer_type (generic_type type: (type_identifier) @scope))]))
  name: (field_identifier) @name) @method

; At the root:
(source_file (type_declaration . [(type_spec name: (_) @name) (type_alias name: (_) @name)]) @class)
(source_file (const_declaration . (const_spec . name: (identifier) @name)) @constants)
(source_file (var_declaration . (var_spec . name: (identifier) @name)) @constants)
(source_file (var_declaration (var_spec_list . (var_spec . name: (identifier) @name))) @constants)
