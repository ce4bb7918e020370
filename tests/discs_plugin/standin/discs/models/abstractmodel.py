"""The interface of models."""


class AbstractModel:
    def get_value_and_grad(self, params, x):
        raise NotImplementedError
