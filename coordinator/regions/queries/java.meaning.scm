(method_declaration (modifiers "static" @static)? name: (identifier) @name) @method
(constructor_declaration name: (identifier)) @method
(compact_constructor_declaration) @lambda
(lambda_expression) @lambda
(class_declaration name: (identifier) @name) @class
(interface_declaration name: (identifier) @name) @class
(enum_declaration name: (identifier) @name) @class
(record_declaration name: (identifier) @name) @class

(method_declaration parameters: (formal_parameters (formal_parameter type: (_) @annotation name: (identifier) @name) @required))
(constructor_declaration parameters: (formal_parameters (formal_parameter type: (_) @annotation name: (identifier) @name) @required))
(formal_parameters (spread_parameter) @rest)
(lambda_expression parameters: (identifier) @name @required)

(method_declaration type: (_) @returns)
(superclass (_) @base)
(super_interfaces (type_list (_) @base))
(extends_interfaces (type_list (_) @base))

(method_invocation object: (_)? @object name: (identifier) @callee arguments: (argument_list) @arguments) @call
(object_creation_expression type: (_) @callee arguments: (argument_list) @arguments !body) @call
(explicit_constructor_invocation constructor: (_) @callee arguments: (argument_list) @arguments) @call
(field_access) @use
(method_reference . (identifier) @use)
(argument_list (identifier) @use)
(type_identifier) @use

(class_body (field_declaration type: (_) @annotation declarator: (variable_declarator name: (identifier) @name)) @bind)
(record_declaration parameters: (formal_parameters (formal_parameter type: (_) @annotation name: (identifier) @name) @bind))
(enum_constant name: (identifier) @name) @bind
(local_variable_declaration type: (_) @annotation declarator: (variable_declarator name: (identifier) @name)) @bind
(enhanced_for_statement type: (_) @annotation name: (identifier) @name) @bind

(import_declaration "static" @static (scoped_identifier scope: (_) @module name: (identifier) @what @name) .) @import
(import_declaration . (scoped_identifier scope: (_) @module name: (identifier) @what @name) .) @import
(import_declaration (_) @module (asterisk) @all) @import
