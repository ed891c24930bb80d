import type { MemoryField } from '../../lists/memory.ts'
import type { ListResource } from '../../lists/resource.ts'
import { ContentUpload } from '../schemas.ts'
import type { RunningUpload } from './running-upload.ts'

/** What queries of the list of uploads may name. */
export const uploadList: ListResource<MemoryField<RunningUpload>> = {
  name: 'content-uploads',
  key: 'uid',
  fields: {
    uid: { type: 'text', read: ({ uid }) => uid },
    kind: { type: 'text', read: ({ kind }) => kind },
    name: { type: 'text', read: ({ name }) => name },
    phase: { type: 'text', read: ({ phase }) => phase },
    startedAt: { type: 'time', read: ({ startedAt }) => startedAt },
    lastActivityAt: { type: 'time', read: ({ lastActivityAt }) => lastActivityAt },
  },
  // Not by the last activity: an upload that is under way while a client pages would be missed.
  defaultOrder: [{ path: 'startedAt', direction: -1 }],
  item: ContentUpload,
}

/** An upload as the API shows it. */
export function showUpload(upload: RunningUpload): ContentUpload {
  const { uid, kind, name, phase, receivedBytes, totalBytes, missingBytes, remainingSeconds } = upload
  return {
    ...{ uid, kind, name, phase, receivedBytes },
    ...(totalBytes === undefined ? {} : { totalBytes }),
    ...(missingBytes === undefined ? {} : { missingBytes }),
    startedAt: new Date(upload.startedAt).toISOString(),
    lastActivityAt: new Date(upload.lastActivityAt).toISOString(),
    ...(remainingSeconds === undefined ? {} : { remainingSeconds }),
  }
}
