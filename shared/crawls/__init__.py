"""Access logs read for one question: when did each engine fetch what was published."""
