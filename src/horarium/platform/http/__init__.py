"""HTTP server: middleware, authentication, routing and responses."""
