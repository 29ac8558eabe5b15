//! The Kubernetes API without Kubernetes: the face of the library
