import { defineCommand, type Noun } from '../command.ts'
import { onHost } from '../on-host.ts'
import type { Options } from '../options.ts'

const body = {
  data: { value: 'FILE', summary: 'The JSON body; - is standard input.', completes: 'file' },
} as const satisfies Options

export const api: Noun = [
  defineCommand({
    name: 'api get',
    arguments: ['PATH'],
    summary: 'GET a path of the API and print the reply unchanged',
    load: onHost(async () => (await import('../api.ts')).getApi),
  }),
  ...(['POST to', 'PUT to', 'PATCH', 'DELETE'] as const).map((verb) => {
    const [method = ''] = verb.split(' ')
    return defineCommand({
      name: `api ${method.toLowerCase()}`,
      arguments: ['PATH'],
      summary: `${verb} a path of the API`,
      options: body,
      load: onHost(async () => (await import('../api.ts')).sendApi(method)),
    })
  }),
]
