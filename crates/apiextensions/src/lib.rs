//! Custom resources: structural schemas, CEL, conversion, the life of a definition.
