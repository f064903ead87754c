"""An API key in, a principal out. Ships alone to a Lambda: knows neither Flask nor the inbox."""
