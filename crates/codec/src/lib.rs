//! Wire forms of objects: protobuf, YAML, watch frames.
