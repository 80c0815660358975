[(line_comment) (block_comment) (attribute_item)] @lead

(function_item name: (identifier) @name) @function
(function_signature_item name: (identifier) @name) @function
[(struct_item name: (_) @name) (enum_item name: (_) @name) (union_item name: (_) @name) (trait_item name: (_) @name)] @class

(impl_item "impl" @name !trait type: [
  (type_identifier) @scope
  (generic_type type: (type_identifier) @scope)
  (scoped_type_identifier name: (type_identifier) @scope)]) @class
(impl_item "impl" @name trait: (_) @name type: [
  (type_identifier) @scope
  (generic_type type: (type_identifier) @scope)
  (scoped_type_identifier name: (type_identifier) @scope)]) @class

(mod_item name: (identifier) @name body: (_)) @namespace
(macro_definition name: (identifier) @name) @function
[(const_item name: (identifier) @name) (static_item name: (identifier) @name) (type_item name: (_) @name)] @constants
