(comment) @lead

(document [
  (block_node (block_mapping (block_mapping_pair key: (_) @name) @key))
  (flow_node (flow_mapping (flow_pair key: (_) @name) @key))])
(document (block_node (block_mapping (block_mapping_pair value: [
  (block_node (block_mapping (block_mapping_pair key: (_) @name) @key))
  (flow_node (flow_mapping (flow_pair key: (_) @name) @key))]))))
