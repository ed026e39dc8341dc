"""Publishers: each hands decisions to one kind of consumer and sees nothing else."""
