import { expect, it } from 'vitest'
import { commandBlocks } from '../support/document-commands.ts'

it('blocks of commands are those marked sh, each with its heading; headings in blocks are none', () => {
  const document = `# One
\`\`\`sh
# no heading
a
b
\`\`\`
\`\`\`
# printed
\`\`\`
## Two
\`\`\`yaml
c: 1
\`\`\`
\`\`\`sh
d
\`\`\`
`
  expect(commandBlocks(document)).toEqual([
    { heading: 'One', script: '# no heading\na\nb' },
    { heading: 'Two', script: 'd' },
  ])
})
