import { sha256 } from './layouts.ts'
import { rawTar, type RawMember } from './tar-bytes.ts'

export interface OldImage {
  readonly tags: readonly string[] | null
  readonly layers: readonly (string | Buffer)[]
  readonly architecture?: string
}

/**
 * What docker save wrote before version 25: a folder with `layer.tar` for each layer, a symbolic link where an earlier
 * image has the same layer, a configuration named by its digest, manifest.json last.
 */
export function dockerArchive(
  images: readonly OldImage[],
  change: (members: RawMember[]) => void = () => undefined,
): Buffer {
  const members: RawMember[] = []
  const homes = new Map<string, string>()
  const manifest = images.map(({ tags, layers, architecture = 'amd64' }, image) => {
    const config = JSON.stringify({
      ...{ architecture, os: 'linux', created: '2020-01-01T00:00:00Z' },
      rootfs: { type: 'layers', diff_ids: layers.map((layer) => `sha256:${sha256(layer)}`) },
    })
    const names = layers.map((layer, index) => {
      const folder = sha256(`${image} ${index}`)
      members.push({ name: `${folder}/`, kind: '5' }, { name: `${folder}/VERSION`, content: '1.0' })
      const home = homes.get(sha256(layer))
      if (home === undefined) members.push({ name: `${folder}/layer.tar`, content: layer })
      else members.push({ name: `${folder}/layer.tar`, kind: '2', linkName: `../${home}/layer.tar` })
      homes.set(sha256(layer), home ?? folder)
      return `${folder}/layer.tar`
    })
    members.push({ name: `${sha256(config)}.json`, content: config })
    return { Config: `${sha256(config)}.json`, RepoTags: tags, Layers: names }
  })
  // The header has 100 bytes for the name of a target.
  members.push(
    { name: 'manifest.json', content: JSON.stringify(manifest) },
    { name: 'repositories', content: '{}' },
  )
  change(members)
  return rawTar(members)
}
