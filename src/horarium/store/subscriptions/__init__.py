"""Who is told of what happens: subscriptions, how far each has been told, and what could not be delivered."""
