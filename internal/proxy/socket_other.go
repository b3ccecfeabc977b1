//go:build !linux

package proxy

import (
	"context"
	"errors"
	"os"

	"github.com/atip-dev/atip-exec/internal/ip"
)

// Without network namespaces nobody is ever served.

func acceptFrom(*os.File) (stream, error) { return nil, errors.ErrUnsupported }

func dialAddr(context.Context, ip.Addr, int) (stream, error) { return nil, errors.ErrUnsupported }

func datagramTo(ip.Addr, int) (stream, error) { return nil, errors.ErrUnsupported }

func ownAddrs() ([]ip.Addr, error) { return nil, errors.ErrUnsupported }
