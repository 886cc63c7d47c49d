"""How a problem is computed: strategies, their tiles and costs, and the choice among them."""
