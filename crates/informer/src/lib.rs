//! client-go's list-watch machinery: reflector, DeltaFIFO, indexer, shared informers, work queue.
