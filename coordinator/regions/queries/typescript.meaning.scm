(function_signature name: (identifier) @name) @function
(class_body (method_signature "static"? @static name: (property_identifier) @name) @method)
(class_body (abstract_method_signature name: (property_identifier) @name) @method)
(interface_body (method_signature name: (property_identifier) @name) @method)
(class_body (public_field_definition name: [(property_identifier) (private_property_identifier)] @name value: (arrow_function) @method))
[(function_type) (constructor_type) (call_signature) (construct_signature) (method_signature)] @lambda
(abstract_class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @class

(formal_parameters (required_parameter pattern: (identifier) @name type: (type_annotation (_) @annotation)? !value) @required)
(formal_parameters (required_parameter pattern: [(object_pattern) (array_pattern)] !value) @required)
(formal_parameters (required_parameter pattern: (identifier) @name type: (type_annotation (_) @annotation)? value: (_)) @optional)
(formal_parameters (required_parameter pattern: [(object_pattern) (array_pattern)] value: (_)) @optional)
(formal_parameters (optional_parameter pattern: (identifier) @name type: (type_annotation (_) @annotation)?) @optional)
(formal_parameters (required_parameter pattern: (rest_pattern)) @rest)

(function_declaration return_type: (type_annotation (_) @returns))
(method_definition return_type: (type_annotation (_) @returns))
(arrow_function return_type: (type_annotation (_) @returns))
(method_signature return_type: (type_annotation (_) @returns))
(abstract_method_signature return_type: (type_annotation (_) @returns))

(extends_clause value: (_) @base)
(extends_type_clause type: (_) @base)
(implements_clause (type_identifier) @base)

(class_body (public_field_definition name: [(property_identifier) (private_property_identifier)] @name type: (type_annotation (_) @annotation)? value: (_)? @value) @bind)
(interface_body (property_signature name: (property_identifier) @name type: (type_annotation (_) @annotation)?) @bind)
(variable_declarator name: (identifier) @name type: (type_annotation (_) @annotation)) @bind
(formal_parameters (required_parameter (accessibility_modifier) pattern: (identifier) @name type: (type_annotation (_) @annotation)?) @own)
(enum_declaration name: (identifier) @name) @bind
(type_alias_declaration name: (type_identifier) @name) @bind

(export_statement "default" @name declaration: (abstract_class_declaration name: (_) @what)) @export
(type_annotation (type_identifier) @use)
(type_arguments (type_identifier) @use)
(as_expression (type_identifier) @use)
