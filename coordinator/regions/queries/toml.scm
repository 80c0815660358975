(comment) @lead

(document (pair . (_) @path) @key)
(table . (_) @path) @key
(table_array_element . (_) @path) @key
(table (pair . (_) @path) @key)
(table_array_element (pair . (_) @path) @key)
