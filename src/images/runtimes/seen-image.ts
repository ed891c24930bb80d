import type { Platform } from '../../content/format/descriptor.ts'

/** What the documents of an image say of it. */
export interface ImageDescription {
  /** Of its documents, configurations and layers, as a registry sends them, each counted once. */
  readonly sizeBytes: number
  /** Only what is here. */
  readonly platforms: readonly Platform[]
  /** Digest of its configuration, which Docker and Podman call the image id; absent if it has several. */
  readonly imageId?: string
}

/** An image as one runtime has it. */
export interface SeenImage {
  /** Where the runtime knows namespaces. */
  readonly namespace?: string
  /** Digests of its index and its manifest; those that name more come first. Empty if the image was never in a registry. */
  readonly digests: readonly string[]
  /** As the runtime spells them: `docker.io/library/busybox:1.36`, `busybox@sha256:…`. */
  readonly names: readonly string[]
  /** What is known of it yet. */
  readonly description: Partial<ImageDescription>
}

/** A runtime of this host. */
export interface Runtime {
  readonly name: 'containerd' | 'docker' | 'podman'
  /** Path of its socket, or of the folder that was read last. */
  readonly endpoint: string
  /** The systemd unit that an operator looks at. */
  readonly unit: string
  /**
   * Reads its images. What is missing in their descriptions is read too, as far as `budgetMs` allows, and the rest the next time.
   * @param signal gives up
   * @returns `absent`: the host does not have it; `stopped`: it does not run, and asking would start it
   */
  read(signal: AbortSignal): Promise<readonly SeenImage[] | 'absent' | 'stopped'>
}

/** Most bytes of an answer that lists images. */
export const listBytes = 64 * 2 ** 20
/** How long a reading may take until the last description is asked for; the others follow in the next one. */
export const budgetMs = 4_000
