// A sender that is too fast for FQ-CoDel, from Go:
//
//	CGO_LDFLAGS="-L/usr/local/lib -lsojournpath" go run .
package main

/*
#cgo CFLAGS: -I${SRCDIR}/../../include
#include <stdlib.h>
#include "sojournpath.h"
*/
import "C"

import (
	"fmt"
	"os"
	"unsafe"
)

func main() {
	if C.sojourn_abi_version() != C.SOJOURN_ABI_VERSION {
		fmt.Fprintln(os.Stderr, "the library is not that of the header")
		os.Exit(1)
	}
	rate, rtt, aqm := C.CString("10 Mbit/s"), C.CString("40 ms"), C.CString("fq_codel")
	defer C.free(unsafe.Pointer(rate))
	defer C.free(unsafe.Pointer(rtt))
	defer C.free(unsafe.Pointer(aqm))
	options := (*C.struct_sojourn_options)(C.calloc(1, C.sizeof_struct_sojourn_options))
	defer C.free(unsafe.Pointer(options))
	options.size, options.rate, options.rtt, options.aqm = C.sizeof_struct_sojourn_options, rate, rtt, aqm
	message := (*C.char)(C.malloc(200))
	defer C.free(unsafe.Pointer(message))
	path := C.sojourn_path_new(options, message, 200)
	if path == nil {
		fmt.Fprintln(os.Stderr, C.GoString(message))
		os.Exit(1)
	}
	defer C.sojourn_path_free(path)

	for index := 0; index < 2000; index++ {
		packet := C.struct_sojourn_packet{
			size: C.sizeof_struct_sojourn_packet, user: C.uint64_t(index), bytes: 1262,
			source: 1, destination: 2, protocol: 17, way: C.SOJOURN_DOWN,
		}
		if C.sojourn_path_send(path, C.uint64_t(index*500_000), &packet, nil) < 0 {
			fmt.Fprintln(os.Stderr, C.GoString(C.sojourn_path_error(path)))
			os.Exit(1)
		}
	}
	arrived := 0
	for next := C.sojourn_path_next_event(path); next != C.SOJOURN_NEVER; next = C.sojourn_path_next_event(path) {
		delivery := C.struct_sojourn_delivery{size: C.sizeof_struct_sojourn_delivery}
		for C.sojourn_path_poll(path, next, &delivery) > 0 {
			arrived++
		}
	}
	counts := C.struct_sojourn_counts{size: C.sizeof_struct_sojourn_counts}
	C.sojourn_path_counts(path, C.SOJOURN_DOWN, &counts)
	fmt.Printf("sent %d, arrived %d, dropped %d\n", counts.sent, arrived, counts.dropped)
}
