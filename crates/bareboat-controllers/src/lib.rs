//! Garbage collection, namespaces, CRDs: controllers as clients of the server
