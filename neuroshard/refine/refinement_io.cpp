// Rounds of a refinement as JSON.
#include "neuroshard/refine/refinement_io.h"

#include <utility>

#include "neuroshard/train/training_io.h"

namespace neuroshard {

namespace {

Json round_json(const RefinementRound& round) {
  return Json::Object{{"round", round.round}, {"plans", round.plans},
                      {"sets", round.sets},   {"mean_gap", round.mean_gap},
                      {"bias", round.bias},   {"devices", to_json(round.devices)},
                      {"drift", round.drift}};
}

}  // namespace

Json refinement_json(const RefinementResult& result, const std::string& model) {
  Json::Array rounds;
  for (const RefinementRound& round : result.rounds) rounds.push_back(round_json(round));
  return Json::Object{{"format", "neuroshard/refinement/1"},
                      {"model", model},
                      {"agreed", result.agreed},
                      {"rounds", std::move(rounds)},
                      {"training", to_json(result.last.training)},
                      {"unseen_combinations", to_json(result.last.unseen_combinations)},
                      {"unseen_tables", to_json(result.last.unseen_tables)}};
}

}  // namespace neuroshard
