// Models made anew with other rates.
#include "neuroshard/cost/communication/faster_links.h"

#include <utility>

#include "neuroshard/cost/communication/analytic_communication.h"
#include "neuroshard/cost/communication/neural_communication_model.h"

namespace neuroshard {

namespace {

Interconnect faster(Interconnect interconnect, double factor) {
  interconnect.intra_host_gb_per_s *= factor;
  interconnect.card_gb_per_s *= factor;
  return interconnect;
}

/// Of the model's own among those of its file.
std::size_t cluster_number(const NeuralCommunicationModel& model) {
  return static_cast<std::size_t>(&model.cluster() - model.info().clusters.data());
}

}  // namespace

std::shared_ptr<const CommunicationCostModel> with_faster_links(const CommunicationCostModel& model,
                                                                double factor) {
  if (const auto* analytic = dynamic_cast<const AnalyticCommunicationModel*>(&model)) {
    return std::make_shared<AnalyticCommunicationModel>(faster(analytic->interconnect(), factor));
  }
  if (const auto* learned = dynamic_cast<const NeuralCommunicationModel*>(&model)) {
    CommunicationModelInfo info = learned->info();
    const std::size_t number = cluster_number(*learned);
    info.clusters[number].interconnect = faster(info.clusters[number].interconnect, factor);
    return std::make_shared<NeuralCommunicationModel>(learned->shared_network(), std::move(info),
                                                      number);
  }
  return nullptr;
}

}  // namespace neuroshard
