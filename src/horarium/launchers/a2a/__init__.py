"""Prompts to agents over the A2A protocol: its two generations, agent cards, calls and conversations."""
