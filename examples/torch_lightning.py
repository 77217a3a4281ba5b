"""The penalty in Lightning: a submodule, saved in checkpoints and moved with the model.

``python examples/torch_lightning.py``
"""

import lightning
import torch
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.utils.data import DataLoader, TensorDataset

from fairtransport.metrics import strong_pairwise_disparity
from fairtransport.torch import TransportPenalty


class FairModel(lightning.LightningModule):
    """A network with the penalty in its loss; in a distributed run the penalty sees the rows of all processes."""

    def __init__(self, weight: float) -> None:
        super().__init__()
        self.weight = weight
        self.network = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
        self.penalty = TransportPenalty(2)

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        """Return logits."""
        return self.network(X)[:, 0]

    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
        """Return the loss of a batch, and log the penalty."""
        X, y, groups = batch
        logits = self(X)
        penalty = self.penalty(torch.sigmoid(logits), groups)
        self.log("penalty", penalty)
        return binary_cross_entropy_with_logits(logits, y) + self.weight * penalty

    def configure_optimizers(self) -> dict:
        """Return Adam with a decreasing learning rate."""
        optimizer = torch.optim.Adam(self.parameters(), lr=0.01)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=400)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def make_rows(n: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return features that differ between two groups, labels and groups; one row in ten is in the second group."""
    groups = (torch.rand(n) < 0.1).long()
    X = torch.randn(n, 4) + 1.5 * groups[:, None] * torch.tensor([1.0, 1.0, 0.0, 0.0])
    y = (X.sum(dim=1) + torch.randn(n) > 1.0).float()
    return X, y, groups


def train(weight: float) -> float:
    """Train and return the disparity of new rows."""
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*make_rows(4000)), batch_size=64, shuffle=True)
    model = FairModel(weight)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    lightning.Trainer(max_steps=400, accelerator="cpu", enable_checkpointing=False, **quiet).fit(model, loader)
    X, _, groups = make_rows(10_000)
    with torch.no_grad():
        scores = torch.sigmoid(model(X))
    return strong_pairwise_disparity(scores.double().numpy(), sensitive_features=groups.numpy())


if __name__ == "__main__":
    print(f"disparity without the penalty {train(0.0):.3f}, with it {train(1.0):.3f}")
