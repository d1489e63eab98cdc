import GPy
import numpy as np
from emukit.model_wrappers.gpy_quadrature_wrappers import create_emukit_model_from_gpy_model
from emukit.quadrature.loop import WSABILLoop
from emukit.quadrature.measures import GaussianMeasure
from emukit.quadrature.methods import WSABIL
from model import log_likelihood, mean, sd


def likelihood(points):
    return np.exp([[log_likelihood(point)] for point in points])


x = mean + sd * np.random.default_rng(1).standard_normal((10, 2))
gp = GPy.models.GPRegression(x, likelihood(x), GPy.kern.RBF(2, ARD=False))
measure = GaussianMeasure(mean, sd**2)
base = create_emukit_model_from_gpy_model(gp, measure=measure)
loop = WSABILLoop(WSABIL(base, x, likelihood(x)))
loop.run_loop(likelihood, 40)

integral, _ = loop.model.integrate()
print(np.log(integral))
