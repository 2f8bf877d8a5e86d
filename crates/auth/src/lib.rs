//! Who asks and what they may: authenticators, RBAC, bootstrap policy, tokens, certificates.
