// SPDX-License-Identifier: MIT
// Partitions a hypergraph with Zoltan PHG: a program of its own, because Zoltan needs an MPI and SimGrid
// exports functions of the same names. Reads from standard input what zoltan_partition.cpp writes, answers
// with "parts" and the part of every vertex. Source: Devine et al., IPDPS 2006 (Zoltan's parallel hypergraph
// partitioner).
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#include <zoltan.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

namespace {

struct Input {
  std::uint32_t parts = 0;
  double epsilon = 0;
  std::vector<float> weight, cost;
  std::vector<int> first_pin;  // by net
  std::vector<ZOLTAN_ID_TYPE> pins;
};

bool read(Input& input) {
  std::size_t vertices = 0, nets = 0;
  std::cin >> input.parts >> input.epsilon >> vertices >> nets;
  if (!std::cin) return false;
  input.weight.resize(vertices);
  for (float& weight : input.weight) std::cin >> weight;
  for (std::size_t n = 0; n < nets && std::cin; ++n) {
    float cost = 0;
    std::size_t size = 0;
    std::cin >> cost >> size;
    input.cost.push_back(cost);
    input.first_pin.push_back(static_cast<int>(input.pins.size()));
    for (std::size_t i = 0; i < size && std::cin; ++i) {
      ZOLTAN_ID_TYPE pin = 0;
      std::cin >> pin;
      input.pins.push_back(pin);
    }
  }
  return static_cast<bool>(std::cin);
}

const Input& of(void* data) { return *static_cast<const Input*>(data); }

int count_vertices(void* data, int* error) {
  *error = ZOLTAN_OK;
  return static_cast<int>(of(data).weight.size());
}

void list_vertices(void* data, int, int, ZOLTAN_ID_PTR ids, ZOLTAN_ID_PTR local, int, float* weights,
                   int* error) {
  *error = ZOLTAN_OK;
  for (std::size_t v = 0; v < of(data).weight.size(); ++v) {
    ids[v] = local[v] = static_cast<ZOLTAN_ID_TYPE>(v);
    weights[v] = of(data).weight[v];
  }
}

void size_of_nets(void* data, int* nets, int* pins, int* format, int* error) {
  *error = ZOLTAN_OK;
  *nets = static_cast<int>(of(data).cost.size());
  *pins = static_cast<int>(of(data).pins.size());
  *format = ZOLTAN_COMPRESSED_EDGE;
}

void list_nets(void* data, int, int, int, int, ZOLTAN_ID_PTR nets, int* first, ZOLTAN_ID_PTR pins,
               int* error) {
  *error = ZOLTAN_OK;
  const Input& input = of(data);
  for (std::size_t n = 0; n < input.cost.size(); ++n) {
    nets[n] = static_cast<ZOLTAN_ID_TYPE>(n);
    first[n] = input.first_pin[n];
  }
  for (std::size_t i = 0; i < input.pins.size(); ++i) pins[i] = input.pins[i];
}

void count_costs(void* data, int* nets, int* error) {
  *error = ZOLTAN_OK;
  *nets = static_cast<int>(of(data).cost.size());
}

void list_costs(void* data, int, int, int, int, ZOLTAN_ID_PTR nets, ZOLTAN_ID_PTR local, float* costs,
                int* error) {
  *error = ZOLTAN_OK;
  for (std::size_t n = 0; n < of(data).cost.size(); ++n) {
    nets[n] = local[n] = static_cast<ZOLTAN_ID_TYPE>(n);
    costs[n] = of(data).cost[n];
  }
}

int partition(Input& input) {
  float version = 0;
  if (Zoltan_Initialize(0, nullptr, &version) != ZOLTAN_OK) return 1;
  Zoltan_Struct* zoltan = Zoltan_Create(MPI_COMM_WORLD);
  const std::string parts = std::to_string(input.parts), tolerance = std::to_string(1 + input.epsilon);
  const std::pair<const char*, const char*> parameters[]{{"DEBUG_LEVEL", "0"},
                                                         {"LB_METHOD", "HYPERGRAPH"},
                                                         {"HYPERGRAPH_PACKAGE", "PHG"},
                                                         {"LB_APPROACH", "PARTITION"},
                                                         {"RETURN_LISTS", "PARTS"},
                                                         {"NUM_GID_ENTRIES", "1"},
                                                         {"NUM_LID_ENTRIES", "1"},
                                                         {"OBJ_WEIGHT_DIM", "1"},
                                                         {"EDGE_WEIGHT_DIM", "1"},
                                                         {"SEED", "1"},
                                                         {"PHG_EDGE_SIZE_THRESHOLD", "1"},  // keep them all
                                                         {"NUM_GLOBAL_PARTS", parts.c_str()},
                                                         {"IMBALANCE_TOL", tolerance.c_str()}};
  for (const auto& [name, value] : parameters)
    if (Zoltan_Set_Param(zoltan, name, value) != ZOLTAN_OK) return 1;
  Zoltan_Set_Num_Obj_Fn(zoltan, count_vertices, &input);
  Zoltan_Set_Obj_List_Fn(zoltan, list_vertices, &input);
  Zoltan_Set_HG_Size_CS_Fn(zoltan, size_of_nets, &input);
  Zoltan_Set_HG_CS_Fn(zoltan, list_nets, &input);
  Zoltan_Set_HG_Size_Edge_Wts_Fn(zoltan, count_costs, &input);
  Zoltan_Set_HG_Edge_Wts_Fn(zoltan, list_costs, &input);
  int changes = 0, id_size = 0, local_size = 0, imported = 0, listed = 0;
  ZOLTAN_ID_PTR import_ids = nullptr, import_local = nullptr, ids = nullptr, local = nullptr;
  int *import_ranks = nullptr, *import_parts = nullptr, *ranks = nullptr, *to_part = nullptr;
  if (Zoltan_LB_Partition(zoltan, &changes, &id_size, &local_size, &imported, &import_ids, &import_local,
                          &import_ranks, &import_parts, &listed, &ids, &local, &ranks, &to_part) != ZOLTAN_OK)
    return 1;
  std::vector<int> part(input.weight.size(), 0);
  for (int i = 0; i < listed; ++i) part[ids[i]] = to_part[i];
  std::cout << "parts\n";
  for (const int p : part) std::cout << p << '\n';
  Zoltan_LB_Free_Part(&import_ids, &import_local, &import_ranks, &import_parts);
  Zoltan_LB_Free_Part(&ids, &local, &ranks, &to_part);
  Zoltan_Destroy(&zoltan);
  return std::cout.flush() ? 0 : 1;
}

/// Where Open MPI keeps its files. Processes that are no part of a job share a folder otherwise, and one that
/// ends takes it from another that is about to begin.
class SessionFolder {
 public:
  SessionFolder() : path_((std::filesystem::temp_directory_path() / "convoy-zoltan-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) path_.clear();  // the common one will do, most of the time
    if (!path_.empty()) setenv("OMPI_MCA_orte_tmpdir_base", path_.c_str(), 1);
  }
  ~SessionFolder() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  SessionFolder(const SessionFolder&) = delete;
  SessionFolder& operator=(const SessionFolder&) = delete;

 private:
  std::string path_;
};

}  // namespace

int main() {
  // One process without daemon and network: otherwise Open MPI looks for ways to start others, and ends the
  // program where it finds none.
  for (const auto& [name, value] : {std::pair{"OMPI_MCA_ess_singleton_isolated", "1"},
                                    {"OMPI_MCA_plm", "isolated"},
                                    {"OMPI_MCA_btl", "self"},
                                    {"OMPI_MCA_pml", "ob1"},
                                    {"OMPI_MCA_btl_base_warn_component_unused", "0"}})
    setenv(name, value, 1);
  Input input;
  if (!read(input)) return 2;
  const SessionFolder folder;
  if (MPI_Init(nullptr, nullptr) != MPI_SUCCESS) return 1;
  const int code = partition(input);
  MPI_Finalize();
  return code;
}
