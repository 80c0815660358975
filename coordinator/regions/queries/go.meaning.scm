(function_declaration name: (identifier) @name) @function
(method_declaration receiver: (parameter_list (parameter_declaration name: (identifier)? @self type: [(type_identifier) @owner (pointer_type (type_identifier) @owner) (generic_type type: (type_identifier) @owner) (pointer_type (generic_type type: (type_identifier) @owner))])) name: (field_identifier) @name) @method
(func_literal) @lambda
(type_spec name: (type_identifier) @name type: [(struct_type) (interface_type)]) @class
(interface_type (method_elem name: (field_identifier) @name) @method)

(function_declaration parameters: (parameter_list (parameter_declaration name: (identifier) @name @required type: (_) @annotation)))
(method_declaration parameters: (parameter_list (parameter_declaration name: (identifier) @name @required type: (_) @annotation)))
(func_literal parameters: (parameter_list (parameter_declaration name: (identifier) @name @required type: (_) @annotation)))
(method_elem parameters: (parameter_list (parameter_declaration name: (identifier) @name @required type: (_) @annotation)))
(function_declaration parameters: (parameter_list (parameter_declaration !name type: (_)) @required))
(method_declaration parameters: (parameter_list (parameter_declaration !name type: (_)) @required))
(func_literal parameters: (parameter_list (parameter_declaration !name type: (_)) @required))
(method_elem parameters: (parameter_list (parameter_declaration !name type: (_)) @required))
(parameter_list (variadic_parameter_declaration) @rest)

(function_declaration result: [(type_identifier) (pointer_type) (qualified_type)] @returns)
(method_declaration result: [(type_identifier) (pointer_type) (qualified_type)] @returns)
(struct_type (field_declaration_list (field_declaration !name type: (_) @base)))
(struct_type (field_declaration_list (field_declaration name: (field_identifier) @name type: (_) @annotation) @bind))

(call_expression function: (_) @callee arguments: (argument_list) @arguments) @call
(selector_expression) @use
(argument_list (identifier) @use)
(expression_list (identifier) @use)
(literal_element (identifier) @use)
(qualified_type) @use
(type_identifier) @use

(short_var_declaration left: (expression_list . (identifier) @name .) right: (expression_list . (_) @value .)) @bind
(short_var_declaration left: (expression_list (identifier) @name)) @bind
(range_clause left: (expression_list (identifier) @name)) @bind
(var_spec name: (identifier) @name type: (_) @annotation) @bind
(var_spec name: (identifier) @name !type value: (expression_list . (_) @value .)?) @bind
(const_spec name: (identifier) @name) @bind

(import_spec name: (package_identifier)? @name path: (interpreted_string_literal (interpreted_string_literal_content) @module)) @import
