import { Type, type Static } from 'typebox'

export const HostImage = Type.Object(
  {
    id: Type.String({ description: 'digest, or imageId where there is none; unique in the list.' }),
    title: Type.String({ description: 'The first of its names with its tag; else its id.' }),
    digest: Type.String({
      description:
        'Digest of its index or manifest; empty for an image that was built or loaded here and has none.',
    }),
    imageId: Type.Optional(
      Type.String({
        description: 'Digest of its configuration, as Docker, Podman and crictl show it, where it is known.',
      }),
    ),
    names: Type.Array(
      Type.Object({
        name: Type.String({ description: 'For example docker.io/library/busybox.' }),
        tag: Type.String({ description: 'Empty for a name without a tag.' }),
        hasTag: Type.Boolean({
          description: 'Whether the registry of this host gives this image for the name and tag.',
        }),
      }),
    ),
    sizeBytes: Type.Integer({
      description:
        'Size of its blobs, as a registry sends them, each counted once; of its unpacked files where only Docker has it; 0 if not known yet.',
    }),
    platforms: Type.Array(
      Type.Object({
        os: Type.String(),
        architecture: Type.String(),
        variant: Type.Optional(Type.String()),
      }),
      { description: 'Platforms that it has on this host; empty if not known yet.' },
    ),
    locations: Type.Array(
      Type.Object({
        runtime: Type.Enum(['store', 'containerd', 'docker', 'podman'], {
          description: 'store: the content of this host, from uploaded bundles.',
        }),
        endpoint: Type.String({ description: 'Socket or folder of the runtime; empty for the store.' }),
        namespace: Type.String({
          description: 'Namespace of containerd, for example k8s.io; otherwise empty.',
        }),
        readAt: Type.Optional(
          Type.String({
            format: 'date-time',
            description: 'Last reading of the runtime; the store is always current.',
          }),
        ),
      }),
      { description: 'Places that have it.' },
    ),
    canBePulledHere: Type.Boolean({
      description:
        'Whether the registry of this host has it whole for the architecture of this host, so that a runtime that has deleted it can pull it again.',
    }),
  },
  { title: 'HostImage' },
)
export type HostImage = Static<typeof HostImage>

export const ImageSource = Type.Object(
  {
    runtime: Type.Enum(['store', 'containerd', 'docker', 'podman']),
    endpoint: Type.String({ description: 'Socket or folder; empty for the store.' }),
    state: Type.Enum(['read', 'stopped', 'failed'], {
      description:
        'stopped: it does not run, and asking would start it; failed: see message. Images of the last good reading stay in the list.',
    }),
    images: Type.Integer({ description: 'Images that it has.' }),
    readAt: Type.Optional(
      Type.String({ format: 'date-time', description: 'The last good reading; absent if there was none.' }),
    ),
    message: Type.Optional(Type.String({ description: 'Why it could not be read, and what to do.' })),
  },
  { title: 'ImageSource', description: 'A runtime that this host does not have is left out.' },
)
export type ImageSource = Static<typeof ImageSource>
