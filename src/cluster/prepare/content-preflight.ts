import type { ContentAccess } from '../../content/store/find.ts'
import type { PreflightProblem } from '../problem.ts'
import { shownPack } from '../wanted.ts'
import type { ContentFound, ContentNeeds, ContentPreflight } from './content-needs.ts'

export interface ContentPreflightOptions {
  readonly content: Pick<ContentAccess, 'find'>
  /** Of this host, as OCI names it: amd64, arm64. */
  readonly architecture: string
}

/** Looks in the content for the images that a cluster needs; each image once. */
export function createContentPreflight({ content, architecture }: ContentPreflightOptions): ContentPreflight {
  /** What is wrong with an image; undefined if a container can be started from it. */
  async function judge(image: string, digests: Set<string>) {
    const found = await content.find(image, 'image')
    if (!found)
      return {
        code: 'ImageMissing',
        message: `image ${image} is in no content bundle of this host; upload a bundle that has it`,
      } as const
    digests.add(found.digest)
    const { name } = found.bundle
    if (!found.isWhole)
      return {
        code: 'ImageDamaged',
        message: `image ${image} is in the bundle ${name}, of which a blob is damaged; upload the bundle again`,
      } as const
    const fits = found.platforms.some(
      (each) => each.os === 'linux' && each.architecture === architecture && each.isCarried,
    )
    if (fits || found.platforms.length === 0) return undefined
    const carried = found.platforms.filter(({ isCarried }) => isCarried).map((each) => each.architecture)
    const has =
      carried.length === 0 ? 'no platform of it whole' : `it for ${[...new Set(carried)].join(', ')}`
    return {
      code: 'ImageForeign',
      message: `image ${image} is not for ${architecture}: the bundle ${name} has ${has}; upload a bundle with it for ${architecture}`,
    } as const
  }

  return {
    async check({ packs, kubernetesImages }: ContentNeeds): Promise<ContentFound> {
      const digests = new Set<string>()
      const wantedBy = new Map<string, string[]>()
      for (const { pack, images } of packs)
        for (const image of images) wantedBy.set(image, [...(wantedBy.get(image) ?? []), pack])
      const problems: PreflightProblem[] = []
      for (const image of new Set([...kubernetesImages, ...wantedBy.keys()])) {
        const problem = await judge(image, digests)
        if (!problem) continue
        const { code, message } = problem
        const wanting = wantedBy.get(image) ?? []
        const names = [...(kubernetesImages.includes(image) ? ['Kubernetes'] : []), ...wanting.map(shownPack)]
        const [pack] = wanting
        problems.push({
          ...{ code, severity: 'error', message: `${message} (needed by ${names.join(', ')})` },
          ...(pack === undefined ? {} : { pack }),
        })
      }
      return { problems, digests: [...digests] }
    },
  }
}
