//! The HTTP side: TLS, request info, authentication, authorisation, content negotiation, handlers.
