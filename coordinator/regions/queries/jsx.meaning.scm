(jsx_opening_element name: (identifier) @use)
(jsx_self_closing_element name: (identifier) @use)
