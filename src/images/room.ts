// `images` joins the images of the content (`content/reads/stored-images.ts`, which the root hands in) with those in the container runtimes. A job
// reads these every minute, within the sandbox of the unit: their sockets can be used on a /run that is read-only, and belong to root.
// `runtimes/containerd.ts` asks over gRPC (`grpc.ts`, `wire.ts`; ADR 22), `docker.ts` over HTTP, `podman.ts` reads files, since the socket of
// Podman belongs to systemd, and each request would start a service. Each has 5 seconds (`readings.ts`); the last reading stays. Descriptions of
// images (size, platforms) do not change with the same digest, and are read once, within 4 seconds of each reading. `join.ts` makes one row for
// each image, in slices, when a reading or the content has changed (`mark()`); a page then only filters and sorts.

import { join } from 'node:path'
import type { StoredImages } from '../content/reads/stored-images.ts'
import type { Ground, Room } from '../root/room.ts'
import { createImages } from './images.ts'
import { createReadings } from './readings.ts'
import { imageRoutes } from './routes.ts'
import { createContainerd } from './runtimes/containerd.ts'
import { createDocker } from './runtimes/docker.ts'
import { createPodman } from './runtimes/podman.ts'

interface ImagesRoomOptions {
  /** The images of the content. */
  readonly stored: StoredImages
  /** Folder below which the runtimes are looked for; `/` but in tests. */
  readonly root: string
}

/** All images of this host: in the content, and in its container runtimes, which a job reads. */
export function createImagesRoom(ground: Ground, { stored, root }: ImagesRoomOptions): Room {
  const { runner, listTokens } = ground
  const at = (path: string) => join(root, path)
  const readings = createReadings({
    ...ground,
    runtimes: [
      createContainerd({ socket: at('/run/containerd/containerd.sock'), unit: 'containerd' }),
      // Containerd of the cluster of this host; the room cluster sets it up.
      createContainerd({
        socket: at('/run/edgehostd-containerd/containerd.sock'),
        unit: 'edgehostd-containerd',
      }),
      // k3s; RKE2 uses the same path.
      createContainerd({ socket: at('/run/k3s/containerd/containerd.sock'), unit: 'k3s' }),
      createDocker({ socket: at('/run/docker.sock'), runner }),
      createPodman({ root }),
    ],
  })
  const images = createImages({ readings, stored })
  return {
    async routes(app) {
      await imageRoutes(app, { images, listTokens })
    },
    jobs: [{ name: 'images', schedule: '41 * * * * *', stuckAfterMs: 60_000, run: readings.refresh }],
    stop: images.stop,
  }
}
