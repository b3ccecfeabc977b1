// Package proxy lets a run that has a network of its own reach the hosts it was granted,
// and no other.
//
// The run has no route anywhere. Inside its network namespace listen two sockets, one for
// HTTP proxying and one for SOCKS5, which this process accepts from: no port and no file
// of the machine leads here. A request names a host; it is looked up once, here, the
// address is checked and that address is connected to. On port 443 the TLS handshake must
// name the same host, on port 80 each request must. TLS is never opened.
//
// The package speaks to the kernel itself: package net would cost each command its
// initialisation, whether it has a network or not.
package proxy
