"""What goes over the wire: each answer and each small body as one typed value, for the server and for its clients."""
