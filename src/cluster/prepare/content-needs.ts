import type { PreflightProblem } from '../problem.ts'
import type { PackImages } from './prepared.ts'

/** What a cluster needs of the content. */
export interface ContentNeeds {
  readonly packs: readonly PackImages[]
  /** Images of Kubernetes itself: `Engine.images`. */
  readonly kubernetesImages: readonly string[]
}

export interface ContentFound {
  /** Images that are missing, damaged, or not for the architecture of this host, each with the pack that wants it. */
  readonly problems: readonly PreflightProblem[]
  /** Digests of the images that were found, for `content.pin`. */
  readonly digests: readonly string[]
}

/** The content part of the pre-flight. */
export interface ContentPreflight {
  check(needs: ContentNeeds): Promise<ContentFound>
}
