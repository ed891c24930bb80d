import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'

/**
 * Has containerd pull an image as the kubelet does: `PullImage` of the Container Runtime Interface, gRPC on its socket.
 * Source: https://github.com/kubernetes/cri-api/blob/master/pkg/apis/runtime/v1/api.proto
 * @param socket its path on this machine
 * @returns the status of gRPC, 0 for success, and its message
 */
export async function pullByCri(socket: string, image: string): Promise<{ status: number; message: string }> {
  const session = connectHttp2('http://localhost', { createConnection: () => connect(socket) })
  try {
    const stream = session.request({
      ...{ ':method': 'POST', ':path': '/runtime.v1.ImageService/PullImage' },
      ...{ 'content-type': 'application/grpc', te: 'trailers' },
    })
    const heads: Record<string, string>[] = []
    for (const each of ['response', 'trailers'])
      stream.on(each, (head: Record<string, string>) => void heads.push(head))
    const closed = once(stream, 'close')
    const name = Buffer.from(image)
    // PullImageRequest: image = 1, of ImageSpec: image = 1. Both lengths are below 128, so each is one byte.
    stream.end(framed(Buffer.from([0x0a, name.length + 2, 0x0a, name.length, ...name])))
    stream.resume()
    await closed
    // A failure may be told in the headers, without trailers.
    const end = heads.find((head) => 'grpc-status' in head)
    return {
      status: Number(end?.['grpc-status']),
      message: decodeURIComponent(end?.['grpc-message'] ?? ''),
    }
  } finally {
    session.close()
  }
}

/** As gRPC sends a message: not compressed, with its length. */
function framed(message: Buffer): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
}
