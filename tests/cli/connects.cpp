// What scripts/check_network.py must find: an object that opens a connection.
#include <sys/socket.h>

namespace neuroshard {

int connected(const sockaddr& address) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  return ::connect(descriptor, &address, sizeof(address)) == 0 ? descriptor : -1;
}

}  // namespace neuroshard
