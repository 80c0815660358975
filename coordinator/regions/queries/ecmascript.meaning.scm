(function_declaration "async"? @async name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(variable_declarator name: (identifier) @name value: [(arrow_function "async"? @async) (function_expression "async"? @async) (generator_function)] @function)
(assignment_expression left: (member_expression object: (identifier) @exports property: (property_identifier) @name) right: [(arrow_function) (function_expression)] @function (#eq? @exports "exports"))
(assignment_expression left: (member_expression object: (member_expression) @exports property: (property_identifier) @name) right: [(arrow_function) (function_expression)] @function (#eq? @exports "module.exports"))
(class_body (method_definition "static"? @static "async"? @async name: [(property_identifier) (private_property_identifier)] @name) @method)
[(arrow_function) (function_expression) (generator_function) (method_definition)] @lambda
(class_declaration name: (_) @name) @class
(variable_declarator name: (identifier) @name value: (class) @class)
(class) @class

(arrow_function parameter: (identifier) @name) @required

(return_statement (_) @given)
(arrow_function body: [(call_expression) (new_expression) (member_expression) (identifier) (parenthesized_expression)] @given)

(call_expression function: (_) @callee arguments: (arguments) @arguments) @call
(new_expression constructor: (_) @callee arguments: (arguments) @arguments) @call
(member_expression) @use
(arguments (identifier) @use)
(variable_declarator value: (identifier) @use)
(return_statement (identifier) @use)
(assignment_expression right: (identifier) @use)
(pair value: (identifier) @use)
(shorthand_property_identifier) @use
(array (identifier) @use)
(spread_element (identifier) @use)
(binary_expression (identifier) @use)

(variable_declarator name: (identifier) @name value: (_)? @value) @bind
(variable_declarator name: (object_pattern (shorthand_property_identifier_pattern) @name)) @bind
(variable_declarator name: (object_pattern (pair_pattern value: (identifier) @name))) @bind
(variable_declarator name: (array_pattern (identifier) @name)) @bind
(for_in_statement left: (identifier) @name) @bind
(catch_clause parameter: (identifier) @name) @bind
(assignment_expression left: (member_expression object: (this) property: [(property_identifier) (private_property_identifier)] @name) right: (_) @value) @own

(import_statement (import_clause (identifier) @name @default) source: (string (string_fragment) @module)) @import
(import_statement (import_clause (named_imports (import_specifier name: (_) @what @name !alias))) source: (string (string_fragment) @module)) @import
(import_statement (import_clause (named_imports (import_specifier name: (_) @what alias: (_) @name))) source: (string (string_fragment) @module)) @import
(import_statement (import_clause (namespace_import (identifier) @name)) source: (string (string_fragment) @module)) @import
(variable_declarator name: (identifier) @name value: (call_expression function: (identifier) @require arguments: (arguments . (string (string_fragment) @module))) (#eq? @require "require")) @import
(variable_declarator name: (object_pattern (shorthand_property_identifier_pattern) @name @what) value: (call_expression function: (identifier) @require arguments: (arguments . (string (string_fragment) @module))) (#eq? @require "require")) @import
(variable_declarator name: (object_pattern (pair_pattern key: (property_identifier) @what value: (identifier) @name)) value: (call_expression function: (identifier) @require arguments: (arguments . (string (string_fragment) @module))) (#eq? @require "require")) @import
(export_statement "*" @all source: (string (string_fragment) @module)) @import

(export_statement (export_clause (export_specifier name: (_) @what @name !alias)) source: (string (string_fragment) @module)) @export
(export_statement (export_clause (export_specifier name: (_) @what alias: (_) @name)) source: (string (string_fragment) @module)) @export
(export_statement (export_clause (export_specifier name: (identifier) @what alias: (_) @name)) !source) @export
(export_statement "default" @name declaration: (_ name: (_) @what)) @export
(export_statement "default" @name value: (identifier) @what) @export
(assignment_expression left: (member_expression object: (identifier) @m property: (property_identifier) @p) right: (object (pair key: (property_identifier) @name value: (identifier) @what)) (#eq? @m "module") (#eq? @p "exports")) @export
(assignment_expression left: (member_expression object: (identifier) @m property: (property_identifier) @name) right: (identifier) @what (#eq? @m "exports")) @export
