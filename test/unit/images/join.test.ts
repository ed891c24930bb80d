import { expect, it } from 'vitest'
import type { StoredImage } from '../../../src/content/reads/stored-images.ts'
import { joinImages } from '../../../src/images/join.ts'
import type { SeenImage } from '../../../src/images/runtimes/describe.ts'

const digest = (letter: string) => `sha256:${letter.repeat(64)}`
const [A, B, config] = [digest('a'), digest('b'), digest('c')]
const [containerd, docker, podman] = [
  { endpoint: 'containerd' },
  { endpoint: 'docker' },
  { endpoint: 'podman' },
]
const amd64 = { os: 'linux', architecture: 'amd64' }

const stored = (image: Partial<StoredImage>): StoredImage => ({
  ...{ digest: A, name: 'docker.io/library/busybox', tag: '1.36', hasTag: true, sizeBytes: 100 },
  ...{ platforms: [amd64], isPullable: true, ...image },
})
const seen = (image: Partial<SeenImage>): SeenImage => ({
  digests: [A],
  names: [],
  description: {},
  ...image,
})
const busybox = (tag: string, hasTag: boolean) => ({ name: 'docker.io/library/busybox', tag, hasTag })

it('one image in the store and in three runtimes is one row with all its places', async () => {
  const rows = await joinImages(
    [[stored({})], [stored({ tag: 'latest' })]],
    [
      {
        source: containerd,
        images: [
          seen({ namespace: 'k8s.io', names: ['docker.io/library/busybox:1.36', config] }),
          seen({ namespace: 'default', names: ['docker.io/library/busybox:1.36'] }),
        ],
      },
      {
        source: docker,
        images: [
          seen({ names: ['busybox:1.36', `busybox@${A}`], description: { sizeBytes: 7, imageId: config } }),
        ],
      },
      { source: podman, images: [seen({ digests: [B, A], names: ['quay.example/mirror/busybox:1.36'] })] },
    ],
  )
  expect(rows).toEqual([
    {
      ...{ id: A, digest: A, imageId: config, title: 'docker.io/library/busybox:1.36', sizeBytes: 100 },
      names: [
        busybox('1.36', true),
        busybox('latest', true),
        { name: 'quay.example/mirror/busybox', tag: '1.36', hasTag: false },
      ],
      platforms: [amd64],
      locations: [
        { source: containerd, namespace: 'k8s.io' },
        { source: containerd, namespace: 'default' },
        { source: docker, namespace: '' },
        { source: podman, namespace: '' },
      ],
      ...{ isStored: true, isPullable: true },
    },
  ])
})

it('a tag that leads to another image in the registry of the host is shown as such', async () => {
  const rows = await joinImages(
    [[stored({ digest: B }), stored({ hasTag: false, isPullable: false })]],
    [{ source: containerd, images: [seen({ names: ['docker.io/library/busybox:1.36'] })] }],
  )
  expect(rows.map(({ id, names, isPullable }) => ({ id, names, isPullable }))).toEqual([
    { id: B, names: [busybox('1.36', true)], isPullable: true },
    { id: A, names: [busybox('1.36', false)], isPullable: false },
  ])
})

it('the title is a name by which the host has the image, also where docker pulled it by the address of the registry', async () => {
  const names = ['127.0.0.1:5081/docker.io/library/busybox:1.36']
  const rows = await joinImages([[stored({})]], [{ source: docker, images: [seen({ names })] }])
  expect(rows[0]?.title).toBe('docker.io/library/busybox:1.36')
})

it('of an image with several digests the one counts that another place knows, else the first', async () => {
  const ofPodman = { source: podman, images: [seen({ digests: [A, B] })] }
  const idsWith = async (others: Parameters<typeof joinImages>[1]) =>
    (await joinImages([], [ofPodman, ...others])).map(({ id }) => id)
  expect(await idsWith([])).toEqual([A])
  expect(await idsWith([{ source: containerd, images: [seen({ digests: [B] })] }])).toEqual([B])
})

it('an image without a digest is joined by its image id, or is a row of its own', async () => {
  const local = {
    source: docker,
    images: [seen({ digests: [], names: ['app:1'], description: { imageId: config } })],
  }
  expect(await joinImages([], [local])).toMatchObject([
    { id: config, digest: '', title: 'docker.io/library/app:1' },
  ])
  const manifest = {
    source: containerd,
    images: [seen({ names: ['app:1'], description: { imageId: config } })],
  }
  expect(await joinImages([], [local, manifest])).toMatchObject([
    { id: A, digest: A, locations: [{ source: containerd }, { source: docker }] },
  ])
})

it('a name with only a digest is shown where there is no tag, and a name that is none of an image as it is', async () => {
  const rows = await joinImages(
    [],
    [
      {
        source: containerd,
        images: [seen({ names: [`plant/app@${A}`] }), seen({ digests: [B], names: ['Not A Name'] })],
      },
    ],
  )
  expect(rows.map(({ title, names }) => ({ title, names }))).toEqual([
    { title: 'Not A Name', names: [{ name: 'Not A Name', tag: '', hasTag: false }] },
    { title: 'docker.io/plant/app', names: [{ name: 'docker.io/plant/app', tag: '', hasTag: false }] },
  ])
})
