//! A Kubernetes REST client: kubeconfig, typed and dynamic clients, watch streams, discovery.
